// Options of the address sanitizer in all targets. The library keeps much for ever, so that threads
// may use it while the process ends; and it goes on where there is no memory.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options();

const char* __asan_default_options() { return "detect_leaks=0:allocator_may_return_null=1"; }
