// Our declarations of NCCL's interface are those of its header, where that is installed.
#include <gtest/gtest.h>

#include "nccl/api.hpp"

#if __has_include(<nccl.h>)
#include <nccl.h>

namespace dtrain::comm::nccl {
namespace {

constexpr bool same(Result ours, ncclResult_t theirs) { return static_cast<int>(ours) == static_cast<int>(theirs); }
static_assert(same(Result::success, ncclSuccess) && same(Result::unhandled_cuda_error, ncclUnhandledCudaError) &&
              same(Result::system_error, ncclSystemError) && same(Result::internal_error, ncclInternalError) &&
              same(Result::invalid_argument, ncclInvalidArgument) && same(Result::invalid_usage, ncclInvalidUsage) &&
              same(Result::remote_error, ncclRemoteError) && same(Result::in_progress, ncclInProgress));
static_assert(static_cast<int>(DataType::float32) == ncclFloat32 &&
              static_cast<int>(DataType::bfloat16) == ncclBfloat16 && static_cast<int>(Operation::sum) == ncclSum);
static_assert(sizeof(UniqueId) == sizeof(ncclUniqueId));
static_assert(offsetof(Config, magic) == offsetof(ncclConfig_t, magic) &&
              offsetof(Config, version) == offsetof(ncclConfig_t, version) &&
              offsetof(Config, blocking) == offsetof(ncclConfig_t, blocking) &&
              offsetof(Config, cga_cluster_size) == offsetof(ncclConfig_t, cgaClusterSize) &&
              offsetof(Config, least_blocks) == offsetof(ncclConfig_t, minCTAs) &&
              offsetof(Config, most_blocks) == offsetof(ncclConfig_t, maxCTAs) &&
              offsetof(Config, net_name) == offsetof(ncclConfig_t, netName) &&
              offsetof(Config, split_share) == offsetof(ncclConfig_t, splitShare));

// The same parameters, one by one, where enumerations count as int and our handle as theirs.
template <typename T>
struct Plain {
  using type = std::conditional_t<std::is_enum_v<T>, int, T>;
};
template <>
struct Plain<Result*> {
  using type = int*;
};
template <>
struct Plain<ncclResult_t*> {
  using type = int*;
};
template <>
struct Plain<Handle> {
  using type = void*;
};
template <>
struct Plain<ncclComm_t> {
  using type = void*;
};
template <>
struct Plain<Handle*> {
  using type = void**;
};
template <>
struct Plain<ncclComm_t*> {
  using type = void**;
};
template <>
struct Plain<cudaStream_t> {
  using type = void*;
};
template <>
struct Plain<UniqueId> {
  using type = char[128];
};
template <>
struct Plain<ncclUniqueId> {
  using type = char[128];
};
template <>
struct Plain<UniqueId*> {
  using type = char*;
};
template <>
struct Plain<ncclUniqueId*> {
  using type = char*;
};
template <>
struct Plain<Config*> {
  using type = long*;
};
template <>
struct Plain<ncclConfig_t*> {
  using type = long*;
};

template <typename F>
struct Shape;
template <typename R, typename... P>
struct Shape<R (*)(P...)> {
  using type = std::tuple<typename Plain<R>::type, typename Plain<P>::type*...>;
};
template <typename Ours, typename Theirs>
constexpr bool alike = std::is_same_v<typename Shape<Ours>::type, typename Shape<Theirs>::type>;

static_assert(alike<decltype(Api::get_version), decltype(&ncclGetVersion)>);
static_assert(alike<decltype(Api::get_unique_id), decltype(&ncclGetUniqueId)>);
static_assert(alike<decltype(Api::init), decltype(&ncclCommInitRankConfig)>);
static_assert(alike<decltype(Api::async_error), decltype(&ncclCommGetAsyncError)>);
static_assert(alike<decltype(Api::group_start), decltype(&ncclGroupStart)>);
static_assert(alike<decltype(Api::group_end), decltype(&ncclGroupEnd)>);
static_assert(alike<decltype(Api::send), decltype(&ncclSend)>);
static_assert(alike<decltype(Api::receive), decltype(&ncclRecv)>);
static_assert(alike<decltype(Api::all_reduce), decltype(&ncclAllReduce)>);
static_assert(alike<decltype(Api::abort), decltype(&ncclCommAbort)>);
static_assert(alike<decltype(Api::error_text), decltype(&ncclGetErrorString)>);

TEST(NcclHeader, AgreesWithOurDeclarations) { SUCCEED() << "NCCL " << NCCL_VERSION_CODE << ", when this was compiled"; }

}  // namespace
}  // namespace dtrain::comm::nccl
#else
TEST(NcclHeader, AgreesWithOurDeclarations) { GTEST_SKIP() << "nccl.h is not installed"; }
#endif
