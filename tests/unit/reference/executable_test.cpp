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
  const Json rows = executable->profile(problem.batch(), 2);
  ASSERT_EQ(rows.as_array().size(), 2 * problem.graph.nodes.size());
  EXPECT_EQ(rows.as_array()[2].at("op").as_string(), "bn.forward");
  EXPECT_EQ(rows.as_array()[2].at("calls").as_integer(), 2);
  EXPECT_GT(executable->planned_bytes(), 0u);
}

}  // namespace
}  // namespace dtrain::testing
