"""Estimators, intervals and comparisons: numbers in, numbers out."""
