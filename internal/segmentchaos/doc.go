// Package segmentchaos runs allocators in processes of their own and does to them what
// production does. They are stopped and continued, killed, asked to end, and started
// anew. Their stores lose requests and replies, or do them late.
//
// Then it looks at every number that any of the processes has returned. Each must be
// unique. Within a process, a call that began after another had returned must have got a
// larger one.
//
// A test binary is its own worker: it calls [Main] before anything else, with the stores
// of its tests. A test calls [Chaos.Run]. If the store is torn, by the mistake that most
// programs with a table of numbers make, the run fails unless a number is repeated. So a
// passing test shows that the chaos would find one.
//
// On systems that are not Unix the package is empty.
package segmentchaos
