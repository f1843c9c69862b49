"""A fresh place for every trial, and commands that leave no process behind."""
