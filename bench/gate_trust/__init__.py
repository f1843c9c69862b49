"""How far a gate can be trusted: simulations with the code that decides, beside exact figures where there are any."""
