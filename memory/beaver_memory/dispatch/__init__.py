"""Operations by their names, in envelopes: what the command line, tools and transports share."""
