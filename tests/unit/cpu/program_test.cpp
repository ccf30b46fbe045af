// How a program is cut into segments and where its tensors lie.
#include "program.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace dtrain::backend::cpu {
namespace {

constexpr std::size_t kSampleBytes = 64 * 1024;
constexpr int kMaxSamples = 4;
const nn::Shape kShapeOfSample{static_cast<int>(kSampleBytes / sizeof(float)), 1, 1};

// An operation that computes nothing.
class IdleOp final : public Op {
 public:
  IdleOp(std::vector<TensorId> read, std::vector<TensorId> written, bool meets = false, std::size_t weights = 0)
      : meets_(meets), weights_(weights) {
    reads = std::move(read);
    writes = std::move(written);
  }
  void prepare(int, int) override {}
  std::size_t scratchpad_bytes() const override { return 0; }
  std::size_t workspace_bytes() const override { return 0; }
  std::size_t weight_bytes() const override { return weights_; }
  void begin(Context&) override {}
  void run(Context&) override {}
  void finish(Context&) override {}
  bool meets() const override { return meets_; }
  void meet(std::span<Context>) override {}
  std::string shape_name(int) const override { return ""; }
  std::size_t packed_bytes() const override { return 0; }
  double bare_seconds(Worker&, int, int) override { return 0; }

 private:
  bool meets_;
  std::size_t weights_;
};

std::unique_ptr<Op> in_place(TensorId read, TensorId written) {
  auto op = std::make_unique<IdleOp>(std::vector{read}, std::vector{written});
  op->in_place_read = read;
  op->in_place_write = written;
  return op;
}

class ProgramPlan : public ::testing::Test {
 protected:
  TensorId add_tensor() { return program_.add_tensor(kShapeOfSample, DType::float32); }
  void add(std::vector<TensorId> read, std::vector<TensorId> written, bool meets = false, std::size_t weights = 0) {
    program_.add(std::make_unique<IdleOp>(std::move(read), std::move(written), meets, weights));
  }

  Program program_;
};

TEST_F(ProgramPlan, EndsASegmentWhereThreadsMeetAndAtTheEnd) {
  const TensorId x = add_tensor(), y = add_tensor();
  add({}, {x});
  add({x}, {}, true);
  add({x}, {y});
  add({y}, {});
  program_.plan(kMaxSamples);
  ASSERT_EQ(program_.segments().size(), 2u);
  EXPECT_EQ(program_.segments()[0].end_op, 2);
  EXPECT_TRUE(program_.segments()[0].meets);
  EXPECT_EQ(program_.segments()[1].first_op, 2);
  EXPECT_EQ(program_.segments()[1].end_op, 4);
  EXPECT_FALSE(program_.segments()[1].meets);
}

TEST_F(ProgramPlan, KeepsWhatCrossesSegmentsForAllSamplesAndTheRestForAChunk) {
  const TensorId x = add_tensor(), y = add_tensor();
  add({}, {x});
  add({x}, {}, true);
  add({x}, {y});
  add({y}, {});
  program_.plan(kMaxSamples);
  EXPECT_FALSE(program_.tensor(x).local);
  EXPECT_TRUE(program_.tensor(y).local);
  EXPECT_EQ(program_.arena_bytes(), kMaxSamples * kSampleBytes);
  EXPECT_EQ(program_.local_bytes(), static_cast<std::size_t>(program_.segments()[1].max_chunk) * kSampleBytes);
}

TEST_F(ProgramPlan, KnowsTheGradientsThatOnlyTheFirstThreadWrites) {
  const TensorId x = add_tensor();
  add({}, {x}, true);
  add({x}, {});
  program_.op(0).gradients = {{8, 4}, {0, 2}};
  program_.op(1).gradients = {{2, 6}};
  program_.plan(kMaxSamples);
  const std::vector<Part> parts = program_.leaders_parts();
  ASSERT_EQ(parts.size(), 2u);
  EXPECT_EQ(parts[0].first, 8);
  EXPECT_EQ(parts[1].size, 2);
}

TEST_F(ProgramPlan, TakesChunksThatFitIntoTheCacheOrAreAsLargeAsTheWeights) {
  const TensorId x = add_tensor(), y = add_tensor();
  add({}, {x}, true);
  add({x}, {y}, false, kMaxSamples * kSampleBytes);
  add({y}, {});
  program_.plan(kMaxSamples);
  ASSERT_EQ(program_.segments().size(), 2u);
  EXPECT_LT(program_.segments()[0].max_chunk, kMaxSamples);
  EXPECT_EQ(program_.segments()[1].max_chunk, kMaxSamples);
}

TEST_F(ProgramPlan, GivesAResultTheMemoryOfWhatIsReadForTheLastTime) {
  const TensorId x = add_tensor(), y = add_tensor(), z = add_tensor();
  add({}, {x});
  program_.add(in_place(x, y));
  program_.add(in_place(y, z));
  add({z}, {}, true);
  add({z}, {});
  program_.plan(kMaxSamples);
  for (const TensorId id : {x, y, z}) {
    EXPECT_FALSE(program_.tensor(id).local) << "the last of them crosses a segment's end";
    EXPECT_EQ(program_.tensor(id).offset, program_.tensor(x).offset);
  }
  EXPECT_EQ(program_.arena_bytes(), kMaxSamples * kSampleBytes);
}

TEST_F(ProgramPlan, GivesAResultItsOwnMemoryWhereTheInputIsReadLater) {
  const TensorId x = add_tensor(), y = add_tensor();
  add({}, {x});
  program_.add(in_place(x, y));
  add({x, y}, {});
  program_.plan(kMaxSamples);
  EXPECT_NE(program_.tensor(x).offset, program_.tensor(y).offset);
}

}  // namespace
}  // namespace dtrain::backend::cpu
