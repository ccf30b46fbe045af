#include "common/executable_contract.hpp"

namespace dtrain::testing {
namespace {

INSTANTIATE_TEST_SUITE_P(Reference, ExecutableContract, ::testing::Values(backend::make_reference_backend));

TEST(ReferenceExecutable, RefusesOtherTypes) {
  const Problem problem = with_batch_norm();
  const auto reference = backend::make_reference_backend();
  EXPECT_EQ(reference->why_not(backend::DType::float32), nullptr);
  EXPECT_THROW(reference->compile(problem.graph, {.dtype = backend::DType::bfloat16}), UsageError);
}

TEST(ReferenceExecutable, ProfilesEveryNodeBothWays) {
  const Problem problem = with_batch_norm();
  const auto executable = backend::make_reference_backend()->compile(problem.graph, {.max_samples = problem.n});
  const backend::Profile profile = executable->profile(problem.batch(), 2);
  ASSERT_EQ(profile.of_shard.size(), 2 * problem.graph.nodes.size());
  EXPECT_EQ(profile.of_shard[2].name, "bn.forward");
  EXPECT_GT(executable->planned_bytes(), 0u);
}

}  // namespace
}  // namespace dtrain::testing
