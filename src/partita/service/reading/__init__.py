"""The reading service: releases and outputs of streams, nothing secret."""
