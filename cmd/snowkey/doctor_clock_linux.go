package main

import "syscall"

// unsynchronised says what the kernel knows against its clock, if it knows something. See
// adjtimex(2), whose state TIME_ERROR is 5.
func unsynchronised() string {
	const timeError = 5
	if state, err := syscall.Adjtimex(new(syscall.Timex)); err == nil && state == timeError {
		return "the kernel says that nothing keeps its clock right"
	}
	return ""
}
