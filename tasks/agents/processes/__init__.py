"""Processes for Python agents: a fork server that has loaded the agent's module, and a process for every trial.

passgate starts the fork server and asks it for processes. Every process, the fork server too, has a keeper: its parent,
which runs none of the agent's code after the fork. The keeper ends the whole process tree when passgate closes its
control socket or ends, and reports how the process ended.
"""
