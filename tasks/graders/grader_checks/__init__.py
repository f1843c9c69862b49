"""Checks of graders themselves: do they notice what is wrong?"""
