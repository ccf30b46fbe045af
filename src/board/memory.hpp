// A board runs for weeks beside the work it shows, so it keeps little.
#pragma once

namespace dtrain::board {

// At the start of the program, before there are threads: they share the memory that they allocate from.
void share_allocations();

void give_back_free_memory();  // of the allocator. Any thread.

// Gives back what reading took: free memory of the allocator, and the code that only the start of the program needed,
// which comes back from its file where it is needed again. Any thread.
void give_back_memory();

}  // namespace dtrain::board
