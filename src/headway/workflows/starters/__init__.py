"""Files to begin with, for `headway workflows init`: each is right as it stands, and says in
comments what its keys do."""
