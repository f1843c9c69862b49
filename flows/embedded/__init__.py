"""Prefect's API served inside of this process, for users who have no server of their own."""
