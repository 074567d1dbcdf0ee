//go:build !linux

package main

// unsynchronised returns nothing where the kernel cannot be asked.
func unsynchronised() string { return "" }
