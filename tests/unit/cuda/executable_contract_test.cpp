#include "common/executable_contract.hpp"

#include "cuda/replay_device.hpp"

namespace dtrain::testing {

INSTANTIATE_TEST_SUITE_P(CudaReplay, ExecutableContract, ::testing::Values(make_replay_backend));

}  // namespace dtrain::testing
