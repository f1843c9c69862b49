"""The pipeline: each module here is a verb, one step from suites to verdict; each folder is a noun."""
