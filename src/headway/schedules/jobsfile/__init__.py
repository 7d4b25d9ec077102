"""The jobs file: periodic jobs, declared in `.headway/jobs.yaml`."""
