// Images a second of the loader alone, for each recipe and number of threads, by the wall clock and, in brackets, by
// the processor time of all threads (what one undisturbed core gives). Nothing is compared, nothing can fail. usage:
// dtrain_loader_bench RECORDS.rec [SECONDS [THREADS...]], or --read RECORDS.rec: MB a second of reading in order
#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <ctime>
#include <string_view>
#include <vector>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/data/image.hpp>
#include <dtrain/data/loader.hpp>

namespace {

using namespace dtrain;
using Clock = std::chrono::steady_clock;

struct Recipe {
  std::string_view name;
  int size;
  data::Augment augment;
};

std::vector<Recipe> recipes() {
  data::Augment crop;
  crop.pad_size = 4;
  crop.random_crop = crop.random_mirror = true;
  crop.mean = {123.68f, 116.779f, 103.939f};
  data::Augment jitter = crop;
  jitter.max_random_h = 36;
  jitter.max_random_s = jitter.max_random_l = 50;
  data::Augment warp = jitter;
  warp.max_random_rotate_angle = 10;
  warp.max_random_shear_ratio = 0.1f;
  return {{"as it is, 32x32", 32, {}},
          {"pad, crop, mirror, 32x32", 32, crop},
          {"recipe cifar10, 28x28", 28, jitter},
          {"recipe and rotate, 28x28", 28, warp}};
}

std::vector<data::Slice> batches_of(std::uint32_t size) {
  constexpr std::uint32_t kBatch = 128;
  std::vector<data::Slice> slices;
  for (std::uint32_t first = 0; first < size; first += kBatch)
    slices.push_back({first, static_cast<int>(std::min(kBatch, size - first))});
  return slices;
}

struct Speed {
  double by_wall = 0, by_processor = 0;  // images a second
};

Speed measure_speed(data::Loader& loader, double seconds) {
  const auto begin = Clock::now();
  const std::clock_t processor_begin = std::clock();
  std::uint64_t images = 0;
  for (std::uint32_t epoch = 0;; ++epoch) {
    loader.start(epoch, batches_of(loader.size()));
    while (const auto batch = loader.next()) {
      images += static_cast<std::uint64_t>(batch->n);
      const double passed = std::chrono::duration<double>(Clock::now() - begin).count();
      const double processor = static_cast<double>(std::clock() - processor_begin) / CLOCKS_PER_SEC;
      if (passed >= seconds) return {static_cast<double>(images) / passed, static_cast<double>(images) / processor};
    }
  }
}

void measure(const Path& rec, double seconds, const std::vector<int>& threads) {
  data::Image first;
  data::decode_image(data::RecordFile(rec).read(0).payload, data::kStoredChannels, first);
  fmt::print("{:<36}", "img/s");
  for (const int count : threads) fmt::print("{:>20}", fmt::format("{} threads", count));
  const auto line = [&](const Recipe& recipe, bool as_bytes) {
    fmt::print("\n{:<36}", as_bytes ? fmt::format("{}, as bytes", recipe.name) : recipe.name);
    for (const int count : threads) {
      data::LoaderOptions options;
      options.shape = {first.c, recipe.size, recipe.size};
      options.classes = 1000;
      options.augment = recipe.augment;
      options.threads = count;
      options.as_bytes = as_bytes;
      data::Loader loader(rec, options);
      measure_speed(loader, seconds / 10);  // warm: pages of the file, buffers
      const Speed speed = measure_speed(loader, seconds);
      fmt::print("{:>20}", fmt::format("{:.0f} ({:.0f})", speed.by_wall, speed.by_processor));
    }
  };
  for (const Recipe& recipe : recipes()) {
    line(recipe, false);
    line(recipe, true);
  }
  fmt::print("\n");
}

std::uint64_t sum_of_words(ByteView bytes) {
  std::uint64_t sum = 0, word = 0;
  for (; bytes.size() >= sizeof(word); bytes = bytes.subspan(sizeof(word))) {
    std::memcpy(&word, bytes.data(), sizeof(word));
    sum += word;
  }
  return sum;
}

// Opens the file, reads all records and looks at every word.
void measure_reading(const Path& rec) {
  const auto begin = Clock::now();
  const data::RecordFile file(rec);
  std::uint64_t sum = 0, bytes = 0;
  data::Record record;
  for (std::size_t i = 0; i < file.size(); ++i) {
    file.read(i, record);
    bytes += record.payload.size();
    sum += sum_of_words(record.payload);
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  fmt::print("{:.0f}\n", static_cast<double>(bytes) / seconds / 1e6);
  if (sum == 0) fmt::print(stderr, "all zeros\n");  // so that no compiler leaves the reading out
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty()) {
    fmt::print(stderr, "usage: dtrain_loader_bench RECORDS.rec [SECONDS [THREADS...]]\n");
    return 2;
  }
  try {
    if (arguments.size() == 2 && arguments[0] == "--read") {
      measure_reading(arguments[1]);
      return 0;
    }
    const double seconds = arguments.size() > 1 ? parse_number(arguments[1]).value_or(1) : 1;
    std::vector<int> threads;
    for (std::size_t i = 2; i < arguments.size(); ++i)
      threads.push_back(static_cast<int>(parse_integer(arguments[i]).value_or(1)));
    measure(arguments[0], seconds, threads.empty() ? std::vector{1, 2} : threads);
  } catch (const Error& error) {
    fmt::print(stderr, "dtrain_loader_bench: {}\n", error.what());
    return 1;
  }
}
