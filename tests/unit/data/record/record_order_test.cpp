#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include <dtrain/data/record.hpp>

#include "common/far_settings.hpp"
#include "data/temporary_folder.hpp"

namespace dtrain::data {
namespace {

constexpr unsigned kPacked = 100;

using Order = std::vector<unsigned>;

Order usual_order() {
  Order order(kPacked);
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

Order other_order() {
  Order order = usual_order();
  std::ranges::reverse(order);
  return order;
}

// "1", "22", "333": of other sizes; else all have three digits.
enum class Sizes { equal, other };

// Records in this order, with a label for each ten of them.
Path write_in_order(const Path& rec, std::span<const unsigned> order, Sizes sizes) {
  RecordWriter writer(rec);
  for (const unsigned number : order) {
    const std::string payload = sizes == Sizes::equal ? fmt::format("{:03}", number) : std::string(4 * number + 1, 'x');
    writer.add(number, static_cast<float>(number / 10), bytes_of(payload));
  }
  writer.finish();
  return rec;
}

RecordOrder order_of(const std::vector<Path>& files, std::size_t count = kPacked) {
  return order_of_records(RecordSet(files), count);
}

TEST(RecordOrder, IsThatOfTheRecordsWhateverTheirFiles) {
  TemporaryFolder folder;
  for (const Sizes sizes : {Sizes::equal, Sizes::other}) {
    const Order order = usual_order();
    const std::span<const unsigned> all(order);
    const RecordOrder whole = order_of({write_in_order(folder / "a.rec", all, sizes)});
    EXPECT_EQ(order_of({write_in_order(folder / "b.rec", all.first(30), sizes),
                        write_in_order(folder / "c.rec", all.subspan(30), sizes)}),
              whole);
    std::filesystem::remove(folder / "a.idx");
    EXPECT_EQ(order_of({folder / "a.rec"}), whole);
  }
}

TEST(RecordOrder, TellsAnotherOrderByTheSizes) {
  TemporaryFolder folder;
  const RecordOrder usual = order_of({write_in_order(folder / "a.rec", usual_order(), Sizes::other)});
  Order swapped = usual_order();
  std::swap(swapped[40], swapped[41]);
  EXPECT_NE(order_of({write_in_order(folder / "b.rec", swapped, Sizes::other)}).sizes, usual.sizes);
}

// As of raw pictures: the two indexes are the same, but for the ids.
TEST(RecordOrder, TellsAnotherOrderOfEqualSizesByTheContents) {
  TemporaryFolder folder;
  const RecordOrder usual = order_of({write_in_order(folder / "a.rec", usual_order(), Sizes::equal)});
  const RecordOrder other = order_of({write_in_order(folder / "b.rec", other_order(), Sizes::equal)});
  EXPECT_EQ(other.sizes, usual.sizes);
  EXPECT_NE(other.contents, usual.contents);
  Order within_classes = usual_order();
  for (std::size_t i = 0; i < kPacked; i += 10) std::reverse(&within_classes[i], &within_classes[i] + 10);
  EXPECT_NE(order_of({write_in_order(folder / "c.rec", within_classes, Sizes::equal)}).contents, usual.contents);
}

TEST(RecordOrder, FollowsTheIndex) {
  TemporaryFolder folder;
  const RecordOrder usual = order_of({write_in_order(folder / "a.rec", usual_order(), Sizes::other)});
  std::string lines;
  const RecordFile file(folder / "a.rec");
  for (const unsigned number : other_order()) lines += fmt::format("{}\t{}\n", number, file.offset(number));
  write_file_atomic(folder / "a.idx", lines);
  EXPECT_EQ(order_of({folder / "a.rec"}), order_of({write_in_order(folder / "b.rec", other_order(), Sizes::other)}));
  EXPECT_NE(order_of({folder / "a.rec"}), usual);
}

TEST(RecordOrder, IsThatOfTheRecordsOfAnEpoch) {
  TemporaryFolder folder;
  Order longer = usual_order();
  write_in_order(folder / "a.rec", longer, Sizes::other);
  for (unsigned more = kPacked; more < kPacked + 20; ++more) longer.push_back(more);
  write_in_order(folder / "b.rec", longer, Sizes::other);
  EXPECT_NE(order_of({folder / "b.rec"}, longer.size()), order_of({folder / "a.rec"}, longer.size()));
  EXPECT_EQ(order_of({folder / "b.rec"}), order_of({folder / "a.rec"}));
}

TEST(RecordOrder, KnowsNothingOfTheContentsOfDamagedRecords) {
  TemporaryFolder folder;
  const Path rec = write_in_order(folder / "a.rec", usual_order(), Sizes::equal);
  const std::string sizes = order_of({rec}).sizes;
  std::string bytes = read_file(rec);
  bytes[0] = 'x';
  write_file_atomic(rec, bytes);
  EXPECT_EQ(order_of({rec}).contents, "");
  EXPECT_EQ(order_of({rec}).sizes, sizes);
}

TEST(RecordOrder, OfFarRecordsIsThatOfTheirSizes) {
  net::TestServer server("s3_server.py");
  TemporaryFolder folder;
  const Path near = write_in_order(folder / "a.rec", usual_order(), Sizes::other);
  const RemoteOptions far{.cache_dir = folder / "cache",
                          .store = std::make_shared<net::ObjectStore>(far_settings(server))};
  const std::string where = "s3://bucket/plain/record-order.rec";
  far.store->put(where, bytes_of(read_file(near)));
  far.store->put(index_path(where).string(), bytes_of(read_file(index_path(near))));
  const RecordOrder order = order_of_records(RecordSet({where}, far), kPacked);
  EXPECT_EQ(order.sizes, order_of({near}).sizes);
  EXPECT_EQ(order.contents, "");
}

}  // namespace
}  // namespace dtrain::data
