// The deleter of a handle of a C library: std::unique_ptr<Handle, Releaser<handle_free>>.
#pragma once

namespace dtrain {

template <auto Release>
struct Releaser {
  template <typename T>
  void operator()(T* handle) const {
    Release(handle);
  }
};

}  // namespace dtrain
