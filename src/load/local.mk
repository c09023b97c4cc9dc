# src/load
