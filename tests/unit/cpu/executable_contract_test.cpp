#include "common/executable_contract.hpp"

namespace dtrain::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(Cpu, ExecutableContract, ::testing::Values(backend::make_cpu_backend));

}  // namespace
}  // namespace dtrain::testing
