"""The agent's part of a trial: its turns and the user's between them."""
