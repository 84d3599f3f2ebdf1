// Gives the library a folder of its own to record into.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <string>

// In the temporary folder, and gone with the process; false: it cannot be made.
inline bool record_into_own_folder() {
  static std::string folder = std::filesystem::temp_directory_path() / "flame-fuzz-XXXXXX";
  if (!mkdtemp(folder.data())) return false;
  atexit([] {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  });
  return setenv("FLAME_DIR", folder.c_str(), 1) == 0;
}
