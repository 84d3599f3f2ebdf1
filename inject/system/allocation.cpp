// Replaces the forms of new that give null. Those of the C++ library throw within and catch, and
// for that take a lock of its own where there is no memory: a child that was forked meanwhile by
// another thread would wait for it for ever.
#include <cstdlib>
#include <new>

// A sanitizer has forms of its own, and wants them paired.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

void* operator new(size_t size, const std::nothrow_t&) noexcept { return malloc(size ? size : 1); }

void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return malloc(size ? size : 1);
}

void* operator new(size_t size, std::align_val_t given, const std::nothrow_t&) noexcept {
  const auto align = static_cast<size_t>(given);
  return aligned_alloc(align, (size + align - 1) / align * align);
}

#endif
