#include "eval_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/csv.hpp>
#include <dtrain/data/contact_sheet.hpp>
#include <dtrain/data/image.hpp>
#include <dtrain/data/numbered_names.hpp>

#include "cli/printable.hpp"
#include "output_places.hpp"
#include "plot/drawing_raster.hpp"
#include "plot/plot_report.hpp"
#include "report_files.hpp"

namespace dtrain::cli {
namespace {

constexpr int kCalibrationBins = 15;
constexpr std::size_t kShownMistakes = 36;

std::string png(const data::Image& image) { return data::encode_own_png(image); }

std::string scores_table(const Judgement& judgement) {
  std::string table = fmt::format("{}\n", kScoresHead);
  for (std::size_t label = 0; label < judgement.scores.size(); ++label) {
    const train::ClassScore& score = judgement.scores[label];
    table += fmt::format("{},{},{},{},{},{:.6f},{:.6f},{:.6f}\n", label, csv_field(judgement.names[label]),
                         score.support, score.guessed, score.correct, score.precision(), score.recall(), score.f1());
  }
  return table;
}

std::string confusion_table(const Judgement& judgement, const train::ConfusionMatrix& matrix) {
  std::string table(kConfusionHead);
  for (const std::string& name : judgement.names) table += fmt::format(",{}", csv_field(name));
  const std::size_t classes = judgement.names.size();
  for (std::size_t truth = 0; truth < classes; ++truth) {
    table += fmt::format("\n{}", csv_field(judgement.names[truth]));
    for (std::size_t guess = 0; guess < classes; ++guess) table += fmt::format(",{}", matrix[truth * classes + guess]);
  }
  return table + "\n";
}

// `pictures`: their names by sample, all empty where they are not known.
std::string predictions_table(const Judgement& judgement, const std::vector<std::string>& pictures) {
  const bool has_names = std::ranges::any_of(pictures, [](const std::string& name) { return !name.empty(); });
  std::string table = fmt::format("{}{}\n", kPredictionsHead, has_names ? ",file" : "");
  const auto name = [&](int label) { return csv_field(judgement.names[static_cast<std::size_t>(label)]); };
  for (const train::JudgedSample& each : judgement.samples) {
    table += fmt::format("{},{},{},{},{},{:.9g}{}\n", each.sample, each.label, name(each.label), each.guess.label,
                         name(each.guess.label), each.guess.probability,
                         has_names ? "," + csv_field(pictures[each.sample]) : "");
  }
  return table;
}

std::string reliability_table(const Judgement& judgement) {
  std::string table = fmt::format("{}\n", kReliabilityHead);
  for (const train::CalibrationBin& bin : judgement.bins) {
    table +=
        fmt::format("{:.6f},{:.6f},{},{:.6f},{:.6f}\n", bin.low, bin.high, bin.samples, bin.confidence, bin.accuracy);
  }
  return table;
}

std::vector<std::string> drawable(const std::vector<std::string>& names) {
  std::vector<std::string> shown;
  for (const std::string& name : names) shown.push_back(printable_word(name));
  return shown;
}

data::Image mistakes_picture(const Judgement& judgement, const data::RecordSet& set,
                             const std::vector<std::string>& pictures) {
  const std::vector<std::string> names = drawable(judgement.names);
  std::vector<plot::Mistake> mistakes;
  data::Record record;
  for (const train::JudgedSample& each : train::worst_mistakes(judgement.samples, kShownMistakes)) {
    set.read(each.sample, record);
    const std::string file = printable_word(Path(pictures[each.sample]).filename().string());
    mistakes.push_back({data::thumbnail(record.payload, plot::kThumbnailSide),
                        names[static_cast<std::size_t>(each.label)], names[static_cast<std::size_t>(each.guess.label)],
                        each.guess.probability, file.empty() ? fmt::format("record {}", each.sample) : file});
  }
  return plot::draw_mistakes(mistakes);
}

data::Image reliability_picture(const Judgement& judgement) {
  std::vector<plot::ReliabilityBin> bins;
  for (const train::CalibrationBin& bin : judgement.bins) {
    bins.push_back({bin.low, bin.high, bin.samples, bin.confidence, bin.accuracy});
  }
  return plot::to_image(plot::draw_reliability(bins, judgement.calibration_error()), plot::kPixelsAPoint);
}

}  // namespace

double Judgement::macro_f1() const {
  double sum = 0;
  int classes = 0;
  for (const train::ClassScore& score : scores) {
    if (score.support == 0) continue;
    sum += score.f1();
    ++classes;
  }
  return classes == 0 ? 0 : sum / classes;
}

Judgement judge(std::vector<train::JudgedSample> samples, std::vector<std::string> names, int classes) {
  names = data::numbered_names(std::move(names), static_cast<std::size_t>(classes));
  names.resize(static_cast<std::size_t>(classes));
  Judgement judgement{.samples = std::move(samples), .scores = {}, .names = std::move(names)};
  judgement.scores = train::class_scores(judgement.samples, classes);
  judgement.bins = train::calibration_bins(judgement.samples, kCalibrationBins);
  return judgement;
}

std::vector<Path> write_report(const Path& folder, const Judgement& judgement, const ReportSource& source) {
  make_folder(folder);
  const train::ConfusionMatrix matrix =
      train::confusion_matrix(judgement.samples, static_cast<int>(judgement.names.size()));
  std::vector<Path> files;
  const auto write = [&](const char* name, const std::string& content) {
    files.push_back(folder / name);
    write_output(files.back(), content);
  };
  write("per_class.csv", scores_table(judgement));
  write("confusion.csv", confusion_table(judgement, matrix));
  write("confusion.png",
        png(plot::to_image(plot::draw_confusion(matrix, drawable(judgement.names)), plot::kPixelsAPoint)));
  write("reliability.csv", reliability_table(judgement));
  write("reliability.png", png(reliability_picture(judgement)));
  const data::RecordSet set(data::find_records(source.records.string(), source.remote.store), source.remote);
  const std::vector<std::string> pictures = data::listed_files(set, source.remote.store);
  write("predictions.csv", predictions_table(judgement, pictures));
  write("mistakes.png", png(mistakes_picture(judgement, set, pictures)));
  return files;
}

}  // namespace dtrain::cli
