// The limit of a process on open files.
#pragma once

namespace dtrain {

// Raises the soft limit, which many systems keep at 1,024, as far as the hard one lets it, at most to 65,536. Programs
// that this process starts inherit it.
void raise_open_files();

}  // namespace dtrain
