"""A JSON endpoint as an agent."""  # noqa: A005 - always imported absolutely
