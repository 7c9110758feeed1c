"""Search by populations: ask for candidates, tell what became of them; nothing here knows where they are computed.

optimiser       the contract, the box of parameters, the loop for a plain function
ranking         feasibility, domination, crowding, hypervolume
variation       crossovers and mutations
genetic, nsga2  populations, by generations or overlapping
annealing, pattern, hybrid    chains, polls, and a global search with a local end
checkpoint      a state in a file
"""
