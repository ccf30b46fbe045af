#include "api.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <dtrain/base/error.hpp>

namespace dtrain::comm::nccl {
namespace {

constexpr const char* kHint = "`dtrain doctor` says which NCCL is there; setting 'transport' tcp does without";

template <typename Function>
void find(void* library, const Path& file, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  if (!function)
    throw UsageError(fmt::format("{} has no {}: it is not NCCL 2.18 or newer", file.string(), name), kHint);
}

}  // namespace

Api load(const Path& file) {
  void* const library = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char* const why = ::dlerror();
    throw UsageError(fmt::format("NCCL cannot be loaded: {}", why ? why : file.string()), kHint);
  }
  Api api{};
  find(library, file, "ncclGetVersion", api.get_version);
  find(library, file, "ncclGetUniqueId", api.get_unique_id);
  find(library, file, "ncclCommInitRankConfig", api.init);
  find(library, file, "ncclCommGetAsyncError", api.async_error);
  find(library, file, "ncclGroupStart", api.group_start);
  find(library, file, "ncclGroupEnd", api.group_end);
  find(library, file, "ncclSend", api.send);
  find(library, file, "ncclRecv", api.receive);
  find(library, file, "ncclAllReduce", api.all_reduce);
  find(library, file, "ncclCommAbort", api.abort);
  find(library, file, "ncclGetErrorString", api.error_text);
  return api;
}

}  // namespace dtrain::comm::nccl
