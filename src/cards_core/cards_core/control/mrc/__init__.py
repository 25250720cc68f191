"""Muscle relaxation control: a musculoskeletal robot at rest lets go of what it need not pull."""
