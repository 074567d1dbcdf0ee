//go:build !linux

package main

// unsynchronised says nothing where the kernel cannot be asked.
func unsynchronised() string { return "" }
