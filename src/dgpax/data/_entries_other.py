"""Images, samples of large sets, and one-dimensional sets."""

from __future__ import annotations

from ._entry import CC_BY, NOT_STATED, Entry, words
from ._layouts import binary_images, electrocardiogram, images, plain, with_test_set

_R_DATASETS = "the GitHub repository vincentarelbundock/Rdatasets, commit 1dcc2bf5f955, file csv/{}"
_PIXELS = tuple(f"pixel{row}_{column}" for row in range(28) for column in range(28))

OTHERS = (
    Entry(
        name="mnist",
        num_rows=70000,
        task="classification",
        num_splits=1,
        input_names=_PIXELS,
        output_name="digit",
        licence="CC BY-SA 3.0",
        citation="LeCun, Bottou, Bengio and Haffner (1998). Gradient-based learning applied to document recognition. "
        "Proceedings of the IEEE 86(11), 2278-2324.",
        source="the GitHub repositories karpathy/convnetjs, commit b0d19208e1a7 (training images) and "
        "patrick-kidger/equinox, commit 9336d820b2ef (labels and test images)",
        layout=images,
        files={"mnist.npz": "2eff34ea2de73d4ab7b9143295dd901c0eafcd3312811991482ac5574f33c627"},
    ),
    Entry(
        name="fashion_mnist_vae",
        num_rows=70000,
        task="regression",
        num_splits=0,
        input_names=tuple(f"feature{i}" for i in range(30)),
        output_name="class",
        licence="MIT",
        citation="Xiao, Rasul and Vollgraf (2017). Fashion-MNIST: a novel image dataset for benchmarking machine "
        "learning algorithms. arXiv:1708.07747.",
        source="Fashion-MNIST (Zalando): the means of a variational auto-encoder with 30 latent dimensions, trained "
        "for dgpax after the recipe of the STRIDE paper; the class label 0..9 is regressed on",
        layout=plain,
        files={"fashion_mnist_vae.npz": "fc304a4be27b0fda4ea9ef8c4c32e7c687013b0fd44a4f5ff495c3238152a31b"},
    ),
    Entry(
        name="rectangles",
        num_rows=51200,
        task="classification",
        num_splits=1,
        input_names=_PIXELS,
        output_name="taller_than_wide",
        licence=NOT_STATED,
        citation="Larochelle, Erhan, Courville, Bergstra and Bengio (2007). An empirical evaluation of deep "
        "architectures on problems with many factors of variation. ICML.",
        source="the GitHub repository markvdw/convgp, commit 543d1fb4f614, file datasets/rectangles.zip",
        layout=binary_images,
        files={"rectangles.npz": "cabb36a98f3340581521b5fc3f77fdbe2b1d03bc4fe826b86bf655cb78f05778"},
    ),
    Entry(
        name="nycflights13_100k",
        num_rows=100000,
        task="regression",
        num_splits=0,
        input_names=words("month day day_of_week plane_age air_time distance arrival_time departure_time"),
        output_name="arrival_delay",
        licence="CC0",
        citation="Wickham. nycflights13: flights that departed New York City in 2013 (data of the US Bureau of "
        "Transportation Statistics).",
        source="the Python package nycflights13 0.0.3 (flights.csv and planes.csv): 100,000 of its complete rows",
        layout=plain,
        files={"nycflights13_100k.npz": "581cc9429a4c67cd031cbba388e76135472dfdd7be4083618199e1a23ba4c933"},
    ),
    Entry(
        name="higgs_10k",
        num_rows=15000,
        task="classification",
        num_splits=1,
        input_names=(
            *("lepton_pT", "lepton_eta", "lepton_phi", "missing_energy_magnitude", "missing_energy_phi"),
            *(f"jet{i}_{quantity}" for i in range(1, 5) for quantity in ("pT", "eta", "phi", "b_tag")),
            *("m_jj", "m_jjj", "m_lv", "m_jlv", "m_bb", "m_wbb", "m_wwbb"),
        ),
        output_name="signal",
        licence=CC_BY,
        citation="Baldi, Sadowski and Whiteson (2014). Searching for exotic particles in high-energy physics with deep "
        "learning. Nature Communications 5, 4308.",
        source="the UCI Machine Learning Repository (HIGGS), by way of the GitHub repository SpringerNLP/Chapter2, "
        "commit a1399ca49d29, files data/higgs_train_10k.csv and data/higgs_test_5k.csv",
        layout=with_test_set,
        files={"higgs_10k.npz": "97b44070c4936c21e27d798921a14cc91269e4957d28852e7bfaef33f894b9a1"},
    ),
    Entry(
        name="susy_low8_10k",
        num_rows=11000,
        task="classification",
        num_splits=1,
        input_names=tuple(f"low_level{i}" for i in range(1, 9)),
        output_name="signal",
        licence=CC_BY,
        citation="Baldi, Sadowski and Whiteson (2014). Searching for exotic particles in high-energy physics with deep "
        "learning. Nature Communications 5, 4308.",
        source="the UCI Machine Learning Repository (SUSY), by way of the GitHub repository pghysels/STRUMPACK, "
        "commit cfba574f60b7, folder examples/dense/data",
        layout=with_test_set,
        files={"susy_low8_10k.npz": "872bc508ad9e077a439fd2c8557277b16e9009e76b307a9266eb1d94282bc652"},
    ),
    Entry(
        name="mcycle",
        num_rows=133,
        task="regression",
        num_splits=0,
        input_names=("time",),
        output_name="acceleration",
        licence=NOT_STATED,
        citation="Silverman (1985). Some aspects of the spline smoothing approach to non-parametric regression curve "
        "fitting. Journal of the Royal Statistical Society B 47(1), 1-52.",
        source=_R_DATASETS.format("MASS/mcycle.csv"),
        layout=plain,
        files={"mcycle.npz": "b59249395412ac6afcce3f897c30395af7c6f99d4dfc0064afa52de335bc75e4"},
    ),
    Entry(
        name="mauna_loa_co2",
        num_rows=468,
        task="regression",
        num_splits=0,
        input_names=("year",),
        output_name="co2",
        licence=NOT_STATED,
        citation="Keeling and Whorf (1997). Atmospheric CO2 concentrations at Mauna Loa. Scripps Institution of "
        "Oceanography, University of California.",
        source=_R_DATASETS.format("timeSeriesDataSets/co2_ts.csv"),
        layout=plain,
        files={"mauna_loa_co2.npz": "580dc32f9e8328fec6574afb9baadea78a40981282b84067cf9401b4bdbb69fb"},
    ),
    Entry(
        name="airpassengers",
        num_rows=144,
        task="regression",
        num_splits=0,
        input_names=("year",),
        output_name="passengers",
        licence=NOT_STATED,
        citation="Box and Jenkins (1976). Time series analysis, forecasting and control, series G. Holden-Day.",
        source=_R_DATASETS.format("datasets/AirPassengers.csv"),
        layout=plain,
        files={"airpassengers.npz": "eea9ccdf6d1acc6109d92dde5267842d3b70180723f3055afc5cde2204ea2091"},
    ),
    Entry(
        name="snelson1d",
        num_rows=200,
        task="regression",
        num_splits=0,
        input_names=("x",),
        output_name="y",
        licence="Apache-2.0 (of the repository)",
        citation="Snelson and Ghahramani (2006). Sparse Gaussian processes using pseudo-inputs. NIPS 18.",
        source="the GitHub repository GPflow/GPflow, commit 81fe1fb86a77, folder doc/sphinx/notebooks/theory/data",
        layout=plain,
        files={"snelson1d.npz": "78f7c3b725000bf574868cf04dd79be91f5079cec20cec93521506e1f5a037fb"},
    ),
    Entry(
        name="heartbeat_pcg",
        num_rows=4832,
        task="regression",
        num_splits=0,
        input_names=("time",),
        output_name="amplitude",
        licence=NOT_STATED,
        citation="Bentley, Nordehn, Coimbra and Mannor (2011). The PASCAL classifying heart sounds challenge.",
        source="the GitHub repository FrankDattalo/heartbeat-sounds, commit ee0010531e44, file "
        "heartbeat-sounds/set_a/normal__201102081321.wav, resampled to 612.5 Hz",
        layout=plain,
        files={"heartbeat_pcg.npz": "7e876a159862316f45c7a13b7f6fa828b0fb48e87b2e8a0580ddfdaf995d4577"},
    ),
    Entry(
        name="ecg",
        num_rows=108000,
        task="regression",
        num_splits=0,
        input_names=("time",),
        output_name="voltage",
        licence="ODC-By (PhysioNet)",
        citation="Moody and Mark (2001). The impact of the MIT-BIH arrhythmia database. IEEE Engineering in Medicine "
        "and Biology Magazine 20(3), 45-50.",
        source="PhysioNet (MIT-BIH record 208), by way of the GitHub repository scipy/dataset-ecg, commit "
        "e35b2263c86a, file ecg.dat",
        layout=electrocardiogram,
        files={"ecg.npz": "d2f2a022603095db034d3198a964baa24ab1ae6d7deee00dcb461d5909b86737"},
    ),
)
