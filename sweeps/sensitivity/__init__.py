"""Which parameters matter: screening and variance-based sensitivity of any quantity of a study.

distribution    how an uncertain parameter is spread
design          points of the unit cube by number (scrambled Sobol, Monte-Carlo); the contract of a design
morris          elementary effects: design and figures
saltelli        design for variance-based indices
estimator       first, total and second order indices with their errors, while the samples come in
expansion       polynomial chaos with its cross-validated error, the cheap alternative
failure         what becomes of samples that failed
"""
