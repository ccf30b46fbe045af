#include "common/executable_contract.hpp"

#include "common/replay_device.hpp"

namespace dtrain::testing {

INSTANTIATE_TEST_SUITE_P(CudaReplay, ExecutableContract, ::testing::Values(backend::cuda::make_large_replay_backend));

}  // namespace dtrain::testing
