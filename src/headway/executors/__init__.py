"""How each type of job is started: a job's frozen parameters become a supervisor's specification."""
