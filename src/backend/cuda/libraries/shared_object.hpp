// A library opened while dtrain runs. It is never closed: libraries of GPUs leave threads and handlers behind.
#pragma once

#include <string>

#include <dtrain/base/files.hpp>

#include "search.hpp"

namespace dtrain::backend::cuda {

class SharedObject {
 public:
  // Empty where it cannot be opened; problem() says why.
  explicit SharedObject(const Path& file);
  explicit operator bool() const { return handle_ != nullptr; }
  const std::string& problem() const { return problem_; }
  // nullptr where there is no such symbol.
  template <typename Function>
  Function* symbol(const char* name) const {
    return reinterpret_cast<Function*>(address(name));
  }

 private:
  void* address(const char* name) const;
  void* handle_ = nullptr;
  std::string problem_;
};

// What libcudnn and libnccl say of themselves, without their headers.
Probe probe_cudnn(const Path& file);
Probe probe_nccl(const Path& file);

LibraryWanted cudnn_wanted();
LibraryWanted nccl_wanted();

}  // namespace dtrain::backend::cuda
