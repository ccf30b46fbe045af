// The limit of a process on open files.
#pragma once

#include <cstddef>
#include <string>

namespace dtrain {

// Raises the soft limit, which many systems keep at 1,024, as far as the hard one lets it, at most to 65,536. Programs
// that this process starts inherit it.
void raise_open_files();

// What to do where a call failed with this error because no file descriptor is left. Empty: it failed otherwise.
std::string hint_without_descriptors(int error);

// How many files this process may still open.
std::size_t free_descriptors();

}  // namespace dtrain
