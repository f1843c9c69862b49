"""The meter between agents and models: budgets, costs and transcripts of model calls."""
