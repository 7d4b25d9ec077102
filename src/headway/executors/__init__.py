"""How each type of job is started: its parameters become a supervisor's specification."""
