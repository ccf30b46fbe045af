#include <gtest/gtest.h>

#include <dtrain/train/tensorboard.hpp>

#include "data/temporary_folder.hpp"
#include "events/tensorboard_frame.hpp"

namespace dtrain::train {
namespace {

using namespace std::string_literals;

std::vector<Path> files_in(const Path& folder) {
  return {std::filesystem::directory_iterator(folder), std::filesystem::directory_iterator()};
}

// Cuts a file into the payloads of its frames; each frame must be the one that its payload gives.
std::vector<std::string> payloads_of(const std::string& file) {
  std::vector<std::string> payloads;
  for (std::size_t at = 0; at < file.size();) {
    std::uint64_t length = 0;
    file.copy(reinterpret_cast<char*>(&length), sizeof(length), at);
    payloads.push_back(file.substr(at + 12, length));
    EXPECT_EQ(file.substr(at, length + 16), tensorboard_frame(payloads.back()));
    at += length + 16;
  }
  return payloads;
}

TEST(TensorBoard, FramesCarryMaskedChecksums) {
  // Written by tensorboard's own RecordWriter.
  EXPECT_EQ(tensorboard_frame("abc"), "\003\000\000\000\000\000\000\000\260\231\111\016\141\142\143\156\127\361\041"s);
}

TEST(TensorBoard, AFileBeginsWithItsVersion) {
  const TemporaryFolder folder;
  const EventWriter writer(folder / "runs");
  const auto files = files_in(folder / "runs");
  ASSERT_EQ(files.size(), 1u);
  EXPECT_TRUE(files[0].filename().string().starts_with("events.out.tfevents."));
  const auto payloads = payloads_of(read_file(files[0]));
  ASSERT_EQ(payloads.size(), 1u);
  EXPECT_EQ(payloads[0].substr(9),
            "\x1a\x0d"
            "brain.Event:2");
}

TEST(TensorBoard, ScalarsHoldTagStepAndValue) {
  const TemporaryFolder folder;
  EventWriter writer(folder.path());
  writer.scalar("loss", 0.5, 300);
  writer.flush();
  const auto payloads = payloads_of(read_file(files_in(folder.path())[0]));
  ASSERT_EQ(payloads.size(), 2u);
  EXPECT_EQ(payloads[1].substr(9), "\x10\xac\x02\x2a\x0d\x0a\x0b\x0a\x04loss\x15\0\0\0\x3f"s);
}

TEST(TensorBoard, TwoWritersOfOneFolderUseTwoFiles) {
  const TemporaryFolder folder;
  const EventWriter first(folder.path()), second(folder.path());
  EXPECT_EQ(files_in(folder.path()).size(), 2u);
}

TEST(TensorBoard, WhatWasNotFlushedIsWrittenAtTheEnd) {
  const TemporaryFolder folder;
  EventWriter(folder.path()).scalar("loss", 1, 1);
  EXPECT_EQ(payloads_of(read_file(files_in(folder.path())[0])).size(), 2u);
}

TEST(TensorBoard, AFileInTheWayOfTheFolderIsNamed) {
  const TemporaryFolder folder;
  write_file_atomic(folder / "runs", "");
  data::expect_error<Error>([&] { EventWriter writer(folder / "runs"); }, "runs");
}

}  // namespace
}  // namespace dtrain::train
