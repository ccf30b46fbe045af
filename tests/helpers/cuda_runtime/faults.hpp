// Who touches memory that he may not is named before the program ends.
#pragma once

#include <string>

namespace dtrain::testing::cuda_runtime {

class Memory;

// What is done on this thread while it lives, for the message.
class Doing {
 public:
  explicit Doing(const std::string& name);
  ~Doing();
  Doing(const Doing&) = delete;
};

// From now on, about this memory.
void name_faults(const Memory* memory);

}  // namespace dtrain::testing::cuda_runtime
