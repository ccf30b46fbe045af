#include <gtest/gtest.h>

#include <array>
#include <stdexcept>

#include "train/loop/sign_of_life_sink.hpp"

namespace dtrain::train {
namespace {

using namespace std::chrono_literals;

struct CountingSink final : backend::ContributionSink {
  std::span<float> buffer(const backend::ShardRange&) override { return memory; }
  void ready(const backend::ShardRange&, std::int64_t, std::int64_t, bool) override { ++parts; }
  std::array<float, 4> memory{};
  int parts = 0;
};

TEST(SignOfLifeSink, PassesAllOnAndGivesASignForShardsThatTakeLong) {
  CountingSink sink;
  int signs = 0;
  const std::function<void()> sign = [&] { ++signs; };
  SignOfLifeSink always(sink, sign, 0ms);
  EXPECT_EQ(always.buffer({.index = 0, .first = 0, .count = 1}).data(), sink.memory.data());
  for (int shard = 0; shard < 3; ++shard) always.ready({.index = shard, .first = shard, .count = 1}, 0, 4, true);
  EXPECT_EQ(sink.parts, 3);
  EXPECT_EQ(signs, 3);
}

TEST(SignOfLifeSink, TakesDeferredPartsOnlyWhereTheOtherSinkDoes) {
  struct Deferring final : backend::DeferringSink {
    std::span<float> buffer(const backend::ShardRange&) override { return {}; }
    void ready(const backend::ShardRange&, std::int64_t, std::int64_t, bool) override {}
    void defer(const backend::ShardRange&, FloatRange, std::shared_ptr<const DeferredFloats>) override { ++deferred; }
    void compute_deferred() override { ++computed; }
    int deferred = 0, computed = 0;
  } deferring;
  CountingSink plain;
  int signs = 0;
  const std::function<void()> sign = [&] { ++signs; };
  SignOfLifeSink over_plain(plain, sign, 0ms), over_deferring(deferring, sign, 0ms);
  EXPECT_EQ(over_plain.as_sink().deferring(), nullptr);
  backend::DeferringSink* const sink = over_deferring.as_sink().deferring();
  ASSERT_NE(sink, nullptr);
  sink->defer({.index = 0, .first = 0, .count = 1}, {0, 2}, nullptr);
  sink->compute_deferred();
  EXPECT_EQ(deferring.deferred, 1);
  EXPECT_EQ(deferring.computed, 1);
  EXPECT_EQ(signs, 1);
}

TEST(SignOfLifeSink, GivesNoneForPartsInQuickSuccessionAndNeedsNoListener) {
  CountingSink sink;
  int signs = 0;
  const std::function<void()> sign = [&] { ++signs; }, none;
  SignOfLifeSink seldom(sink, sign, 1h), silent(sink, none, 0ms);
  for (int part = 0; part < 4; ++part) {
    seldom.ready({.index = 0, .first = 0, .count = 1}, part, 1, part == 3);
    silent.ready({.index = 0, .first = 0, .count = 1}, part, 1, part == 3);
  }
  EXPECT_EQ(sink.parts, 8);
  EXPECT_EQ(signs, 0);
}

TEST(SignOfLifeSink, WhatASignThrowsIsThrownOnceAllIsComputed) {
  CountingSink sink;
  const std::function<void()> sign = [] { throw std::runtime_error("the coordinator is gone"); };
  SignOfLifeSink always(sink, sign, 0ms);
  for (int part = 0; part < 2; ++part) always.ready({.index = 0, .first = 0, .count = 1}, part, 2, part == 1);
  EXPECT_EQ(sink.parts, 2);
  EXPECT_THROW(always.rethrow(), std::runtime_error);
}

}  // namespace
}  // namespace dtrain::train
