#include "common/executable_contract.hpp"

#include <dtrain/backend/cuda.hpp>

#include "orders.hpp"

namespace dtrain::testing {
namespace {

template <cuda_runtime::Order order, std::uint64_t seed = 1>
std::unique_ptr<backend::Backend> make_gpu() {
  cuda_runtime::change_order(order, seed);
  return backend::make_cuda_backend(1);
}

using cuda_runtime::Order;

INSTANTIATE_TEST_SUITE_P(GpuAsAsked, ExecutableContract, ::testing::Values(make_gpu<Order::as_asked>));
INSTANTIATE_TEST_SUITE_P(GpuWaitedForOnly, ExecutableContract, ::testing::Values(make_gpu<Order::waited_for_only>));
INSTANTIATE_TEST_SUITE_P(GpuOthersFirst, ExecutableContract, ::testing::Values(make_gpu<Order::others_first>));
INSTANTIATE_TEST_SUITE_P(GpuAtRandom, ExecutableContract,
                         ::testing::Values(make_gpu<Order::at_random, 1>, make_gpu<Order::at_random, 2>,
                                           make_gpu<Order::at_random, 3>));

}  // namespace
}  // namespace dtrain::testing
