"""Wire formats: requests to canonical values, outcomes to replies. No I/O."""
