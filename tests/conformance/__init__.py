"""Grades what AgentV graded, and compares the scores: `python -m tests.conformance CORPUS`.

A corpus is a folder with eval files and `agentv_results.jsonl`: a row per test with the agent's answer and AgentV's
score of every grader.
"""
