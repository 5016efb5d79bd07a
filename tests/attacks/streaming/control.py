"""What every streamed submission should do: answer each frame as it comes."""

from acts import greet, serve

greet()
serve()
