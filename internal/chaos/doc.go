// Package chaos runs a test binary as several processes, and does to them what production
// does. They are stopped and continued, killed, asked to end, and started anew. Their
// stores lose requests and replies, or do them late. What they return is in files, in
// which repeated numbers are found.
//
// A test binary is its own worker: it calls [Main] before anything else. Packages
// leasechaos and segmentchaos say what the workers do.
//
// Nothing is left behind. All processes of a run are in one process group. Its keeper
// kills the group when the test ends in whatever way, even if the test is killed itself.
//
// On systems that are not Unix the package is empty.
package chaos
