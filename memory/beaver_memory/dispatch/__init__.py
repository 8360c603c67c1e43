"""Operations by their names, in envelopes, for transports: they check an identity and pass it on as a `Source`."""
